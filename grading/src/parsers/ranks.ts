/** Stores the status unless a pass would replace a failure. */
export function setUnlessFailed(found: Map<string, string>, name: string, status: string): void {
  if (status !== 'PASSED' || found.get(name) !== 'FAILED') found.set(name, status);
}

const RANK: Record<string, number> = { PASSED: 0, SKIPPED: 1, FAILED: 2, ERROR: 3 };

export function setWorst(found: Map<string, string>, name: string, status: string): void {
  const known = found.get(name);
  if (known === undefined || (RANK[status] ?? 0) > (RANK[known] ?? 0)) found.set(name, status);
}
