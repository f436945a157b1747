/** What came is not a valid frame. The message says what is wrong and quotes nothing of it, so that it can be logged and sent back. */
export class BadFrame extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'BadFrame';
  }

  /** Of the member of that name. */
  within(name: string): BadFrame {
    return new BadFrame(`${name}${this.message.startsWith(' ') ? '' : '.'}${this.message}`);
  }
}
