/** Circles of a graph: Tarjan's strongly connected components of more than one node. */

/** Each circle's nodes in order of name. Throws nothing; a node that points at itself is no circle. */
export function circlesOf(arrows: readonly { from: string; to: string }[]): string[][] {
  const next = new Map<string, string[]>();
  for (const { from, to } of arrows) next.set(from, [...(next.get(from) ?? []), to]);
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];

  const visit = (node: string): void => {
    const own = index.size;
    index.set(node, own);
    low.set(node, own);
    stack.push(node);
    for (const other of next.get(node) ?? []) {
      if (!index.has(other)) visit(other);
      // Only what is still on the stack can be in one circle with this node.
      if (stack.includes(other)) low.set(node, Math.min(low.get(node) ?? own, low.get(other) ?? own));
    }
    if (low.get(node) !== own) return;
    const circle = stack.splice(stack.indexOf(node));
    if (circle.length > 1) circles.push(circle.toSorted());
  };
  for (const node of next.keys()) if (!index.has(node)) visit(node);
  return circles.toSorted((a, b) => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1));
}
