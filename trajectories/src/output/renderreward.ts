/** A reward for people: `1.0`, `0.25`, at most three decimal places; `none` without one. */
export function renderReward(reward: number | null): string {
  if (reward === null) return 'none';
  const text = String(Math.round(reward * 1000) / 1000);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
