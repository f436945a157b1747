/** What an operator does to a member of etcd with `etcdctl`. */
import { writeFile } from 'node:fs/promises';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';

export type MemberStatus = Readonly<{ member: bigint; leader: bigint }>;

export class Maintenance {
  readonly #client: Client;

  /** `endpoint`: a member without TLS. */
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

  /** `etcdctl endpoint status`: which member this is, and which one leads. */
  async status(): Promise<MemberStatus> {
    return statusOf(await this.#call('Status', new Uint8Array()));
  }

  /** `etcdctl move-leader`. This member must be the leader. */
  async moveLeader(to: bigint): Promise<void> {
    await this.#call('MoveLeader', new BinaryWriter().tag(1, WireType.Varint).uint64(to).finish());
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

/** Makes another member the leader. Rejects if etcd does not. */
export async function moveLeader(endpoints: readonly string[], choose: (bound: number) => number): Promise<void> {
  const members = endpoints.map((endpoint) => new Maintenance(endpoint));
  try {
    const stats = await Promise.all(members.map((member) => member.status()));
    const leads = stats.findIndex(({ member, leader }) => member === leader);
    const others = stats.filter((_, i) => i !== leads);
    await members[leads]?.moveLeader(others[choose(others.length)]?.member ?? 0n);
  } finally {
    for (const member of members) member.close();
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

/** The member in the header of a StatusResponse, and the leader beside it. */
function statusOf(response: Uint8Array): MemberStatus {
  const found = { member: 0n, leader: 0n };
  const reader = new BinaryReader(response);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 4) found.leader = BigInt(reader.uint64());
    else if (field !== 1) reader.skip(type);
    else {
      const header = new BinaryReader(reader.bytes());
      while (header.pos < header.len) {
        const [of, ofType] = header.tag();
        if (of === 2) found.member = BigInt(header.uint64());
        else header.skip(ofType);
      }
    }
  }
  return found;
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
