/** Finds cycles of a graph: strongly connected components (Tarjan) of more than one node. */

/** Returns the nodes of each cycle, sorted by name. A node that points to itself is no cycle. */
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
      // Only nodes that are still on the stack can be in a cycle with this node.
      if (stack.includes(other)) low.set(node, Math.min(low.get(node) ?? own, low.get(other) ?? own));
    }
    if (low.get(node) !== own) return;
    const circle = stack.splice(stack.indexOf(node));
    if (circle.length > 1) circles.push(circle.toSorted());
  };
  for (const node of next.keys()) if (!index.has(node)) visit(node);
  return circles.toSorted((a, b) => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1));
}
