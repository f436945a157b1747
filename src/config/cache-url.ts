/** Where a cache is reached: over https, at a URL without a path. */

/** Its origin, or undefined when the text is no such URL. */
export function parseCacheUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, pathname, search, hash, username, password } = new URL(text);
  const isBare = pathname === '/' && search === '' && hash === '' && username === '' && password === '';
  return protocol === 'https:' && isBare ? origin : undefined;
}

/** Each once. */
export function parseCacheUrls(texts: readonly string[]): readonly string[] | undefined {
  const urls = texts.map(parseCacheUrl);
  const known = urls.filter((url) => url !== undefined);
  return known.length === urls.length ? [...new Set(known)] : undefined;
}
