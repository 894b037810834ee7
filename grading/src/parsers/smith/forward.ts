/**
 * A memo of the next place where a pattern fits, for readers that walk through a log once: looking for the same far place again
 * and again would be quadratic. `pattern` needs the flag g. The returned function takes positions that never decrease.
 */
export function forward(text: string, pattern: RegExp): (from: number) => RegExpExecArray | null {
  let hit: RegExpExecArray | null = null;
  let searched = -1;
  return (from) => {
    if (searched < 0 || (hit !== null && hit.index < from)) {
      pattern.lastIndex = from;
      hit = pattern.exec(text);
      searched = from;
    }
    return hit;
  };
}
