/**
 * What a server did to its files, as power-journal.c recorded it, and the folders that a loss of
 * power may leave. Synchronised writes are there. Of the others any subset is there, because a disk
 * writes in any order until it must synchronise.
 *
 *   write sync write write │ power is lost: the first write is there, each of the others may be
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Random } from '../../support/crash/random.js';

type Kind = 'write' | 'truncate' | 'sync' | 'unlink';

type Operation = Readonly<{ ns: bigint; kind: Kind; path: string; offset: number; data: Buffer }>;

const kinds: readonly Kind[] = ['write', 'truncate', 'sync', 'unlink'];
const headerBytes = 32;
const sectorBytes = 512;

export class PowerJournal {
  readonly operations: readonly Operation[];
  readonly #folder: string;

  private constructor(operations: readonly Operation[], folder: string) {
    this.operations = operations;
    this.#folder = folder;
  }

  /** Reads the recorded operations on files in the folder. */
  static read(file: string, folder: string): PowerJournal {
    const bytes = readFileSync(file);
    const operations: Operation[] = [];
    for (let at = 0; at + headerBytes <= bytes.length;) {
      const pathEnd = at + headerBytes + bytes.readUInt32LE(at + 20);
      const dataEnd = pathEnd + bytes.readUInt32LE(at + 24);
      operations.push({
        ns: bytes.readBigUInt64LE(at),
        offset: Number(bytes.readBigUInt64LE(at + 8)),
        kind: kinds[bytes.readUInt32LE(at + 16) - 1]!,
        path: bytes.toString('utf8', at + headerBytes, pathEnd),
        data: bytes.subarray(pathEnd, dataEnd),
      });
      at = dataEnd;
    }
    const isFile = ({ path }: Operation): boolean => path.startsWith(`${folder}/`) && !path.endsWith(' (deleted)');
    return new PowerJournal(operations.filter(isFile), folder);
  }

  /**
   * Rewrites the folder as a loss of power after `behind` operations may leave it. Each
   * unsynchronised write is kept with the chance `keptShare`. From operation `liesFrom` on the disk
   * lies: it does not synchronise.
   */
  lose(behind: number, keptShare: number, random: Random, { liesFrom = Infinity } = {}): void {
    const files = new Map<string, { durable: Buffer; pending: Operation[] }>();
    for (const [index, operation] of this.operations.slice(0, behind).entries()) {
      const file = files.get(operation.path) ?? { durable: Buffer.alloc(0), pending: [] };
      files.set(operation.path, file);
      if (operation.kind === 'unlink') files.delete(operation.path);
      else if (operation.kind !== 'sync') file.pending.push(operation);
      else if (index < liesFrom) {
        file.durable = file.pending.reduce(applied, file.durable);
        file.pending = [];
      }
    }
    rmSync(this.#folder, { recursive: true, force: true });
    for (const [path, { durable, pending }] of files) {
      const kept = pending.filter(() => random.chance(keptShare)).map((operation) => torn(operation, random));
      const target = join(this.#folder, relative(this.#folder, path));
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      writeFileSync(target, kept.reduce(applied, durable), { mode: 0o600 });
    }
  }
}

function applied(bytes: Buffer, { kind, offset, data }: Operation): Buffer {
  if (kind === 'truncate') return offset <= bytes.length ? bytes.subarray(0, offset) : grown(bytes, offset);
  const whole = Buffer.from(grown(bytes, offset + data.length));
  data.copy(whole, offset);
  return whole;
}

/** Sometimes keeps only the first sectors of a write. */
function torn(operation: Operation, random: Random): Operation {
  if (operation.kind !== 'write' || operation.data.length <= sectorBytes || !random.chance(0.1)) return operation;
  const sectors = random.below(Math.ceil(operation.data.length / sectorBytes));
  return { ...operation, data: operation.data.subarray(0, sectors * sectorBytes) };
}

function grown(bytes: Buffer, length: number): Buffer {
  return bytes.length >= length ? bytes : Buffer.concat([bytes, Buffer.alloc(length - bytes.length)]);
}
