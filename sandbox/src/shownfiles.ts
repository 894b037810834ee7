/** Files that git ignored at the start of a rollout and shows at its end, because the agent changed what is ignored: the clean tree has them already. */

/** `ignored`: what git ignored at the start, folders with a slash; `shown`: what it shows of that now; `old`: those that nobody has touched since. */
type Listing = { ignored: string[]; shown: string[]; old: string[] };

/**
 * Names, each ended by NUL, of the shown files that the patch leaves out: files that were ignored by themselves, and in folders that were ignored as a
 * whole the files that nobody has touched since. A file that the agent adds to such a folder, or to a folder that it makes in place of
 * an ignored file, and shows is its work.
 *
 * @param output the three lists, whose names end in NUL, with an empty name between two of them
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
