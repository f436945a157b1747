/**
 * A YAML file that an option names, other than the configuration file. Every problem in it is
 * reported with its line.
 */
import { ConfigSyntaxError, parseConfigDocument } from '../../json/config-document.js';
import { readRegularFile } from '../../regular-file.js';
import { SettingsError } from '../settings-error.js';

/** `path`: keys and list indexes, from the outermost to the innermost. */
export type Problem = Readonly<{ path: readonly (string | number)[]; message: string }>;

/**
 * Returns the value that `check` makes of the file. Throws SettingsError for the problems that
 * `check` reports, and for a file that cannot be read.
 */
export function readCheckedFile<Value>(file: string, check: Check<Value>): Value {
  return checkFileText(file, readFileText(file), check);
}

export type Check<Value> = (value: unknown) => Readonly<{ value: Value; problems: readonly Problem[] }>;

/** Throws SettingsError. */
export function readFileText(file: string): string {
  try {
    return readRegularFile(file);
  } catch (error) {
    throw new SettingsError([`${file}: ${(error as Error).message}`]);
  }
}

/** `text`: the content of the file. Throws SettingsError. */
export function checkFileText<Value>(file: string, text: string, check: Check<Value>): Value {
  const { value: given, lineOf } = parseDocument(file, text);
  const { value, problems } = check(given);
  if (problems.length === 0) return value;
  throw new SettingsError(problems.map(({ path, message }) => `${file} line ${lineOf(path)}: ${path.join('.')}: ${message}`));
}

function parseDocument(file: string, text: string): ReturnType<typeof parseConfigDocument> {
  try {
    return parseConfigDocument(text);
  } catch (error) {
    const where = error instanceof ConfigSyntaxError && error.line !== undefined ? `${file} line ${error.line}` : file;
    throw new SettingsError([`${where}: ${(error as Error).message}`]);
  }
}
