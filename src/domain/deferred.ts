/** A promise with its resolvers: `Promise.withResolvers`, which Node 20 does not have. */
export type Deferred<T> = Readonly<{ promise: Promise<T>; resolve: (value: T) => void; reject: (reason: unknown) => void }>;

export function deferred<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] | undefined;
  let reject: Deferred<T>['reject'] | undefined;
  const promise = new Promise<T>((onValue, onReason) => {
    resolve = onValue;
    reject = onReason;
  });
  if (resolve === undefined || reject === undefined) throw new Error('a promise runs its executor at once');
  return { promise, resolve, reject };
}
