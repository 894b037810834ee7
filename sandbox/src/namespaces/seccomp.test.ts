import { expect, it } from 'vitest';
import { seccompProgram } from './seccomp.ts';

const X64 = 0xc000003e;
const ARM64 = 0xc00000b7;
const ALLOW = 0x7fff0000;
const EPERM = 0x00050001;
const ENOSYS = 0x00050026;

/** Interprets the program like the kernel: the part of classic BPF that the table needs. */
function decide(program: Buffer, call: { arch: number; number: number; args?: number[] }): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number, 0);
  data.writeUInt32LE(call.arch, 4);
  for (const [index, value] of (call.args ?? []).entries())
    data.writeBigUInt64LE(BigInt(value), 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at++) {
    const code = program.readUInt16LE(at * 8);
    const [yes, no] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)];
    const k = program.readUInt32LE(at * 8 + 4);
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x06) return k;
    else if (code === 0x15) at += accumulator === k ? yes : no;
    else if (code === 0x35) at += accumulator >= k ? yes : no;
    else if (code === 0x54) accumulator = (accumulator & k) >>> 0;
    else throw new Error(`unexpected instruction ${code}`);
  }
  throw new Error('the program does not return');
}

it.each([
  ['read', 0, ALLOW],
  ['mount', 165, EPERM],
  ['umount2', 166, EPERM],
  ['ptrace', 101, EPERM],
  ['setns', 308, EPERM],
  ['keyctl', 250, EPERM],
  ['bpf', 321, EPERM],
  ['clone3, so that libc falls back to clone', 435, ENOSYS],
  ['a call nobody knows yet', 9_999, ALLOW],
  ['a call of the x32 kind', 0x40000001, ENOSYS],
])('x86_64: %s', (_name, number, verdict) => {
  expect(decide(seccompProgram('x64'), { arch: X64, number })).toBe(verdict);
});

it.each([
  ['read', 63, ALLOW],
  ['mount', 40, EPERM],
  ['setns', 268, EPERM],
  ['clone3', 435, ENOSYS],
])('arm64: %s', (_name, number, verdict) => {
  expect(decide(seccompProgram('arm64'), { arch: ARM64, number })).toBe(verdict);
});

it.each([
  ['x64', X64, 302, 206],
  ['arm64', ARM64, 261, 0],
] as const)(
  '%s: limits of process 1 are out of reach, those of others are not',
  (arch, audit, prlimit, io) => {
    const call = (number: number, ...args: number[]) =>
      decide(seccompProgram(arch), { arch: audit, number, args });
    expect([call(prlimit, 1), call(prlimit, 0x1_0000_0001)]).toEqual([EPERM, EPERM]);
    expect([call(prlimit, 0), call(prlimit, 2), call(prlimit, 11)]).toEqual([ALLOW, ALLOW, ALLOW]);
    expect(call(io, 128)).toBe(ENOSYS);
  },
);

it('allows processes and threads, and no namespaces', () => {
  const clone = (flags: number) => decide(seccompProgram('x64'), { arch: X64, number: 56, args: [flags] });
  expect(clone(0x01200011)).toBe(ALLOW);
  expect(clone(0x003d0f00)).toBe(ALLOW);
  expect(clone(0x10000011)).toBe(EPERM);
  expect(clone(0x00020011)).toBe(EPERM);
});

it('allows queries of terminals, and no input into them', () => {
  const ioctl = (request: number) =>
    decide(seccompProgram('x64'), { arch: X64, number: 16, args: [1, request] });
  expect(ioctl(0x5401)).toBe(ALLOW);
  expect(ioctl(0x5412)).toBe(EPERM);
  expect(ioctl(0x541c)).toBe(EPERM);
});

it.each([
  ['x64', X64, [41, 53]],
  ['arm64', ARM64, [198, 199]],
] as const)(
  '%s: no sockets to the hypervisor, to the ciphers of the kernel, to its audit; all others',
  (arch, audit, numbers) => {
    for (const number of numbers) {
      const socket = (...args: number[]) => decide(seccompProgram(arch), { arch: audit, number, args });
      for (const family of [1, 2, 10, 17]) expect(socket(family, 1, 0)).toBe(ALLOW);
      expect([socket(40, 1, 0), socket(38, 5, 0), socket(16, 3, 9)]).toEqual([EPERM, EPERM, EPERM]);
      expect([socket(16, 3, 0), socket(2, 2, 9)]).toEqual([ALLOW, ALLOW]);
    }
  },
);

it('allows queries of the personality, and does not weaken it', () => {
  const program = seccompProgram('x64');
  const become = (value: number) => decide(program, { arch: X64, number: 135, args: [value] });
  for (const value of [0, 8, 0x20000, 0x20008, 0xffffffff]) expect(become(value)).toBe(ALLOW);
  for (const value of [0x40000, 0x400000, 0xfffdfff7, 1]) expect(become(value)).toBe(EPERM);
  // The following rules still see the number of the call.
  expect(decide(program, { arch: X64, number: 440 })).toBe(EPERM);
});

it('denies calls of other instruction sets', () => {
  expect(decide(seccompProgram('x64'), { arch: 0x40000003, number: 0 })).toBe(ENOSYS);
});

it('throws for a machine without a table', () => {
  expect(() => seccompProgram('riscv64')).toThrow(RangeError);
});
