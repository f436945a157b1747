/**
 * Splits TypeScript text into code, strings and comments, well enough for the house tests and
 * without a parser.
 *
 * Blanked parts keep their length and line breaks, so that line numbers stay right. Only whether
 * '/' begins a regular expression is a guess: it does where a value can begin.
 */
type Kind = 'code' | 'string' | 'comment';

/** Code alone: strings, templates, patterns and comments are blank. */
export function codeOf(text: string): string {
  return keep(text, ['code']);
}

/** Code and strings: comments are blank. */
export function withoutComments(text: string): string {
  return keep(text, ['code', 'string']);
}

export function commentsOf(text: string): string {
  return keep(text, ['comment']);
}

export function lineOf(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

function keep(text: string, kinds: readonly Kind[]): string {
  return [...piecesOf(text)].map(([kind, piece]) => (kinds.includes(kind) ? piece : piece.replaceAll(/[^\n]/g, ' '))).join('');
}

const comment = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y;
const quoted = /'(?:\\[\s\S]|[^'\\\n])*'?|"(?:\\[\s\S]|[^"\\\n])*"?/y;
const templatePart = /(?:\\[\s\S]|\$(?!\{)|[^\\`$])*(?:`|\$\{|$)/y;
const pattern = /\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y;
/** Matches up to where something else may begin. */
const plainCode = /[^'"`/{}]+|[^]/y;
const valueMayBegin = /(?:^|[=(,:[!&|?{};>+\-*%~^]|\b(?:return|typeof|case|in|of|void|delete|throw|yield|await))\s*$/;

function* piecesOf(text: string): Generator<[Kind, string]> {
  /** For each open `${`, how many braces are open inside it. */
  const braces: number[] = [];
  let at = 0;
  const take = (regexp: RegExp): string | undefined => {
    regexp.lastIndex = at;
    const piece = regexp.exec(text)?.[0];
    if (piece === undefined || piece === '') return undefined;
    at += piece.length;
    return piece;
  };

  while (at < text.length) {
    const character = text[at];
    if (character === '`' || (character === '}' && braces.at(-1) === 0)) {
      if (character === '}') braces.pop();
      yield ['code', character];
      at++;
      const part = take(templatePart) ?? '';
      if (part.endsWith('${')) braces.push(0);
      yield ['string', part];
      continue;
    }
    const isSlash = character === '/';
    const commented = isSlash ? take(comment) : undefined;
    if (commented !== undefined) {
      yield ['comment', commented];
      continue;
    }
    const literal = !isSlash ? take(quoted) : valueMayBegin.test(text.slice(Math.max(0, at - 40), at)) ? take(pattern) : undefined;
    if (literal !== undefined) {
      yield ['string', literal];
      continue;
    }
    if (character === '{' && braces.length > 0) braces.push((braces.pop() ?? 0) + 1);
    if (character === '}' && braces.length > 0) braces.push((braces.pop() ?? 0) - 1);
    yield ['code', take(plainCode) ?? ''];
  }
}
