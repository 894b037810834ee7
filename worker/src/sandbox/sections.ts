/** Splits a patch into the parts of its files, and makes the attribute line by which git treats one of them as binary. */

const HEADER = Buffer.from('diff --git ');

/** The parts in order; each begins with its `diff --git` line. No other line of a patch can begin like that. */
export function patchSections(patch: Buffer): Buffer[] {
  const starts: number[] = [];
  for (let at = 0; at >= 0 && at < patch.length; ) {
    if (patch.subarray(at, at + HEADER.length).equals(HEADER)) starts.push(at);
    const newline = patch.indexOf(0x0a, at);
    at = newline < 0 ? -1 : newline + 1;
  }
  return starts.map((start, i) => patch.subarray(start, starts[i + 1] ?? patch.length));
}

/** `"/path" -diff`, with gitattributes' two layers of quoting: pattern characters, then a C string for odd bytes. */
export function attributeLine(path: Buffer): string {
  let pattern = '/';
  for (const byte of path) {
    const char = String.fromCharCode(byte);
    if ('*?[]'.includes(char)) pattern += `\\\\${char}`;
    else if (char === '\\') pattern += '\\\\\\\\';
    else if (char === '"') pattern += '\\"';
    else if (byte < 0x20 || byte > 0x7e) pattern += `\\${byte.toString(8).padStart(3, '0')}`;
    else pattern += char;
  }
  return `"${pattern}" -diff\n`;
}
