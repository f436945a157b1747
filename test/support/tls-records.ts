/**
 * A TLS 1.3 client that writes its records one by one: with one byte each, or with messages that
 * Node never sends. Node makes the handshake and reports the traffic secret; the keys are derived
 * from it as RFC 8446, 5.2 and 7, says.
 */
import { createCipheriv, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { openTls, type Place, type RawTls } from './raw-tls.js';

const cipher = {
  suite: 'TLS_AES_128_GCM_SHA256',
  name: 'aes-128-gcm',
  keyBytes: 16,
  nonceBytes: 12,
  tagBytes: 16,
  secretBytes: 32,
} as const;
const contentTypes = { handshake: 22, applicationData: 23 } as const;
const counterAt = 8;
const answerMsMax = 60_000;
/** A KeyUpdate that requests none in return. */
const keyUpdate = Buffer.from([24, 0, 0, 1, 0]);

export class TlsRecords {
  readonly #connection: RawTls;
  #secret: Buffer;
  #sealed = 0;

  private constructor(connection: RawTls, secret: Buffer) {
    this.#connection = connection;
    this.#secret = secret;
  }

  static async open(place: Place, protocol: 'h2' | 'http/1.1'): Promise<TlsRecords> {
    let secret = Buffer.alloc(0);
    const keylog = (line: Buffer): void => {
      const [label, , value = ''] = line.toString().trim().split(' ');
      if (label === 'CLIENT_TRAFFIC_SECRET_0') secret = Buffer.from(value, 'hex');
    };
    const options = { minVersion: 'TLSv1.3', ciphers: cipher.suite, ALPNProtocols: [protocol] } as const;
    const connection = await openTls(place, options, keylog);
    // Node reports the secret before it writes the end of its handshake.
    await turn();
    return new TlsRecords(connection, secret);
  }

  get socket(): RawTls['tcp'] {
    return this.#connection.tcp;
  }

  get isClosed(): boolean {
    return this.socket.destroyed;
  }

  /** Sends the bytes, each in a record of its own. Returns their length on the wire. */
  sendByteByByte(bytes: Buffer): number {
    const { key, nonce } = this.#keys();
    return this.#write([...bytes].map((byte) => this.#seal(contentTypes.applicationData, Buffer.of(byte), key, nonce)));
  }

  updateKeys(times: number): number {
    const records = Array.from({ length: times }, () => {
      const { key, nonce } = this.#keys();
      const record = this.#seal(contentTypes.handshake, keyUpdate, key, nonce);
      this.#secret = derived(this.#secret, 'traffic upd', cipher.secretBytes);
      this.#sealed = 0;
      return record;
    });
    return this.#write(records);
  }

  async answer(): Promise<string> {
    const [bytes] = (await once(this.#connection.tls, 'data', { signal: AbortSignal.timeout(answerMsMax) })) as [Buffer];
    return bytes.toString();
  }

  destroy(): void {
    this.#connection.tls.destroy();
  }

  #write(records: readonly Buffer[]): number {
    const bytes = Buffer.concat(records);
    this.socket.write(bytes);
    return bytes.length;
  }

  #keys(): Readonly<{ key: Buffer; nonce: Buffer }> {
    return { key: derived(this.#secret, 'key', cipher.keyBytes), nonce: derived(this.#secret, 'iv', cipher.nonceBytes) };
  }

  #seal(type: number, data: Buffer, key: Buffer, nonce: Buffer): Buffer {
    const plain = Buffer.concat([data, Buffer.of(type)]);
    const head = Buffer.from([contentTypes.applicationData, 3, 3, 0, 0]);
    head.writeUInt16BE(plain.length + cipher.tagBytes, 3);
    const own = Buffer.from(nonce);
    own.writeUInt32BE((own.readUInt32BE(counterAt) ^ this.#sealed) >>> 0, counterAt);
    this.#sealed += 1;
    const sealing = createCipheriv(cipher.name, key, own);
    sealing.setAAD(head);
    return Buffer.concat([head, sealing.update(plain), sealing.final(), sealing.getAuthTag()]);
  }
}

/** HKDF-Expand-Label with an empty context; one round of HMAC yields enough bytes. */
function derived(secret: Buffer, label: string, length: number): Buffer {
  const full = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, length, full.length]), full, Buffer.from([0, 1])]);
  return createHmac('sha256', secret).update(info).digest().subarray(0, length);
}
