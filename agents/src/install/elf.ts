/**
 * Reads and relinks ELF files, so that a program of a bundle starts with the loader and the libraries of the bundle in every image. The
 * new names do not fit into the old tables: they go into a new segment at the end of the file, whose entry replaces a PT_NOTE.
 */
import { SwefarmError } from '@swefarm/shared';

const PT = { load: 1, dynamic: 2, interp: 3, note: 4 };
const DT = { null: 0, needed: 1, strtab: 5, strsz: 10, soname: 14, rpath: 15, runpath: 29 };
const PAGE = 0x1000;
const READ_WRITE = 6;

type Segment = { at: number; type: number; offset: number; vaddr: number; filesz: number; memsz: number };
type Entry = { tag: number; value: number };

export type Elf = {
  interpreter: string | null;
  soname: string | null;
  needed: string[];
  /** DT_RPATH applies to the libraries of the libraries too; DT_RUNPATH does not, and disables every DT_RPATH for its file. */
  rpath: string[];
  runpath: string[];
};

/** True for a dynamically linkable 64-bit little-endian file. */
export const isElf = (bytes: Buffer): boolean =>
  bytes.length >= 64 && bytes.readUInt32BE(0) === 0x7f454c46 && bytes[4] === 2 && bytes[5] === 1;

const u64 = (bytes: Buffer, at: number): number => Number(bytes.readBigUInt64LE(at));
const put64 = (bytes: Buffer, at: number, value: number): number => bytes.writeBigUInt64LE(BigInt(value), at);
const aligned = (value: number, to: number): number => Math.ceil(value / to) * to;

function segmentsOf(bytes: Buffer): Segment[] {
  const [start, size, count] = [u64(bytes, 32), bytes.readUInt16LE(54), bytes.readUInt16LE(56)];
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * size;
    return {
      at,
      type: bytes.readUInt32LE(at),
      offset: u64(bytes, at + 8),
      vaddr: u64(bytes, at + 16),
      filesz: u64(bytes, at + 32),
      memsz: u64(bytes, at + 40),
    };
  });
}

function entriesOf(bytes: Buffer, dynamic: Segment): Entry[] {
  const entries: Entry[] = [];
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.filesz; at += 16) {
    const tag = u64(bytes, at);
    if (tag === DT.null) break;
    entries.push({ tag, value: u64(bytes, at + 8) });
  }
  return entries;
}

const firstValue = (entries: readonly Entry[], tag: number): number | undefined =>
  entries.find((entry) => entry.tag === tag)?.value;

function namesOf(bytes: Buffer, segments: readonly Segment[], entries: readonly Entry[]): Buffer {
  const [address, size] = [firstValue(entries, DT.strtab) ?? 0, firstValue(entries, DT.strsz) ?? 0];
  const home = segments.find(
    ({ type, vaddr, filesz }) => type === PT.load && address >= vaddr && address < vaddr + filesz,
  );
  if (!home) throw new SwefarmError('elf_unreadable', 'the ELF file has no table of dynamic names');
  const from = home.offset + address - home.vaddr;
  return bytes.subarray(from, from + size);
}

const textAt = (names: Buffer, at: number): string => {
  const end = names.indexOf(0, at);
  return names.toString('utf8', at, end < 0 ? names.length : end);
};

/** Returns what the loader reads of a file; null for a file that is no ELF file, or is linked statically. */
export function readElf(bytes: Buffer): Elf | null {
  if (!isElf(bytes)) return null;
  const segments = segmentsOf(bytes);
  const dynamic = segments.find(({ type }) => type === PT.dynamic);
  if (!dynamic) return null;
  const entries = entriesOf(bytes, dynamic);
  const names = namesOf(bytes, segments, entries);
  const all = (tag: number): string[] =>
    entries.filter((entry) => entry.tag === tag).map(({ value }) => textAt(names, value));
  const paths = (tag: number): string[] =>
    all(tag).flatMap((list) => list.split(':').filter((path) => path !== ''));
  const interp = segments.find(({ type }) => type === PT.interp);
  return {
    interpreter: interp ? textAt(bytes, interp.offset) : null,
    soname: all(DT.soname)[0] ?? null,
    needed: all(DT.needed),
    rpath: paths(DT.rpath),
    runpath: paths(DT.runpath),
  };
}

export type Links = {
  /** Absolute path of the loader; null keeps the file's, which a library does not have. */
  interpreter: string | null;
  /** Folders of DT_RPATH, which replaces DT_RPATH and DT_RUNPATH. The loader prefers it to LD_LIBRARY_PATH. */
  rpath: readonly string[];
  /** Libraries that are loaded before those of the file. */
  needed?: readonly string[];
};

/** The segment that is appended: the dynamic entries, their names, and the path of the loader. */
function newSegment(
  vaddr: number,
  entries: readonly Entry[],
  names: Buffer,
  links: Links,
): { content: Buffer; dynamicBytes: number; interpreterAt: number } {
  const texts = [names];
  let end = names.length;
  const added = (text: string): number => {
    const bytes = Buffer.from(`${text}\0`);
    texts.push(bytes);
    end += bytes.length;
    return end - bytes.length;
  };
  const needed = (links.needed ?? []).map((name) => ({ tag: DT.needed, value: added(name) }));
  const rpath = { tag: DT.rpath, value: added(links.rpath.join(':')) };
  const interpreterAt = links.interpreter === null ? 0 : added(links.interpreter);
  const replaced = new Set([DT.rpath, DT.runpath, DT.strtab, DT.strsz]);
  const kept = entries.filter(({ tag }) => !replaced.has(tag));
  const dynamicBytes = (needed.length + kept.length + 4) * 16;
  const all = [
    ...needed,
    ...kept,
    rpath,
    { tag: DT.strtab, value: vaddr + dynamicBytes },
    { tag: DT.strsz, value: end },
    { tag: DT.null, value: 0 },
  ];
  const dynamic = Buffer.alloc(dynamicBytes);
  for (const [index, { tag, value }] of all.entries()) {
    put64(dynamic, index * 16, tag);
    put64(dynamic, index * 16 + 8, value);
  }
  return {
    content: Buffer.concat([dynamic, ...texts]),
    dynamicBytes,
    interpreterAt: dynamicBytes + interpreterAt,
  };
}

/** Returns the file with other links. Throws SwefarmError elf_unreadable for a file whose header has no place for a segment. */
export function relink(bytes: Buffer, links: Links): Buffer {
  const segments = segmentsOf(bytes);
  const dynamic = segments.find(({ type }) => type === PT.dynamic);
  const loads = segments.filter(({ type }) => type === PT.load);
  const last = loads.at(-1);
  // The loader wants the PT_LOAD entries in the order of their addresses.
  const free = segments.find(({ type, at }) => type === PT.note && at > (last?.at ?? 0));
  const interp = segments.find(({ type }) => type === PT.interp);
  if (!dynamic || !last || !free || (links.interpreter !== null && !interp)) {
    throw new SwefarmError('elf_unreadable', 'the ELF file cannot be relinked: no dynamic or note segment');
  }
  const entries = entriesOf(bytes, dynamic);
  const offset = aligned(bytes.length, PAGE);
  const vaddr = aligned(Math.max(...loads.map((load) => load.vaddr + load.memsz)), PAGE);
  const { content, dynamicBytes, interpreterAt } = newSegment(
    vaddr,
    entries,
    namesOf(bytes, segments, entries),
    links,
  );
  const made = Buffer.alloc(offset + content.length);
  bytes.copy(made);
  content.copy(made, offset);
  const setRange = ({ at }: Segment, from: number, size: number): void => {
    const [start, address] = [offset + from, vaddr + from];
    for (const [index, value] of [start, address, address, size, size].entries()) {
      put64(made, at + 8 + index * 8, value);
    }
  };
  made.writeUInt32LE(PT.load, free.at);
  made.writeUInt32LE(READ_WRITE, free.at + 4);
  put64(made, free.at + 48, PAGE);
  setRange(free, 0, content.length);
  setRange(dynamic, 0, dynamicBytes);
  if (interp && links.interpreter !== null) {
    setRange(interp, interpreterAt, Buffer.byteLength(links.interpreter) + 1);
  }
  return made;
}
