/** What an operator does to members of etcd with `etcdctl`. */
import { writeFile } from 'node:fs/promises';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';

export class Maintenance {
  readonly #client: Client;

  /** `endpoint`: of a member without TLS. */
  constructor(endpoint: string) {
    this.#client = new Client(new URL(endpoint).host, credentials.createInsecure());
  }

  async defragment(): Promise<void> {
    await this.#call('Defragment', new Uint8Array());
  }

  /** `etcdctl alarm disarm`: each alarm names its member. */
  async disarm(): Promise<void> {
    for (const member of membersOf(await this.#call('Alarm', new Uint8Array()))) {
      const writer = new BinaryWriter();
      writer.tag(1, WireType.Varint).int32(2);
      writer.tag(2, WireType.Varint).uint64(member);
      writer.tag(3, WireType.Varint).int32(1);
      await this.#call('Alarm', writer.finish());
    }
  }

  /** `etcdctl snapshot save`, to that file. */
  async snapshot(file: string): Promise<void> {
    const parts: Uint8Array[] = [];
    const call = this.#client.makeServerStreamRequest('/etcdserverpb.Maintenance/Snapshot', asBuffer, blobOf, new Uint8Array());
    for await (const part of call as AsyncIterable<Uint8Array>) parts.push(part);
    await writeFile(file, Buffer.concat(parts));
  }

  close(): void {
    this.#client.close();
  }

  #call(name: string, request: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) =>
      this.#client.makeUnaryRequest(
        `/etcdserverpb.Maintenance/${name}`,
        asBuffer,
        (value) => value,
        request,
        (error, answer) => (error === null ? resolve(answer ?? new Uint8Array()) : reject(error)),
      ),
    );
  }
}

function asBuffer(value: Uint8Array): Buffer {
  return Buffer.from(value);
}

/** The bytes in a SnapshotResponse. */
function blobOf(response: Uint8Array): Uint8Array {
  const reader = new BinaryReader(response);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 3) return Uint8Array.from(reader.bytes());
    reader.skip(type);
  }
  return new Uint8Array();
}

/** The members of an AlarmResponse. */
function membersOf(response: Uint8Array): readonly bigint[] {
  const members: bigint[] = [];
  const reader = new BinaryReader(response);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field !== 2) {
      reader.skip(type);
      continue;
    }
    const alarm = new BinaryReader(reader.bytes());
    while (alarm.pos < alarm.len) {
      const [of, ofType] = alarm.tag();
      if (of === 1) members.push(BigInt(alarm.uint64()));
      else alarm.skip(ofType);
    }
  }
  return members;
}
