/**
 * Selects files that git ignored at the start of a rollout and shows at its end, because the agent changed the ignore rules. The patch
 * omits these files if the clean tree already has them.
 */

/**
 * `ignored`: the ignored paths at the start, folders with a slash; `shown`: the ignored files that git shows now; `old`: the shown
 * files that are unchanged since the start.
 */
type Listing = { ignored: string[]; shown: string[]; old: string[] };

/**
 * Returns the names, each ended by NUL, of the shown files that the patch omits: files that were ignored individually, and unchanged
 * files in folders that were ignored as a whole. Other files are the agent's work.
 * @param output the three lists; each name ends in NUL, and an empty name separates the lists
 */
export function leftAsTheyWere(output: Buffer): Buffer {
  const { ignored, shown, old } = listingIn(output.toString('latin1'));
  const files = new Set(ignored.filter((path) => !path.endsWith('/')));
  const untouched = new Set(old.map((path) => path.slice('./'.length)));
  const isLeft = (path: string): boolean => untouched.has(path) || files.has(path);
  return Buffer.from(
    shown
      .filter(isLeft)
      .map((path) => `${path}\0`)
      .join(''),
    'latin1',
  );
}

function listingIn(text: string): Listing {
  const lists: string[][] = [[]];
  for (const name of text.split('\0')) {
    if (name === '' && lists.length < 3) lists.push([]);
    else if (name !== '') lists.at(-1)?.push(name);
  }
  const [ignored = [], shown = [], old = []] = lists;
  return { ignored, shown, old };
}
