/**
 * A received message is not a valid frame. The error message quotes nothing of the message, so that
 * it can be logged and sent back.
 */
export class BadFrame extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'BadFrame';
  }

  /** The same error, prefixed with the name of the member in which it occurred. */
  within(name: string): BadFrame {
    return new BadFrame(`${name}${this.message.startsWith(' ') ? '' : '.'}${this.message}`);
  }
}
