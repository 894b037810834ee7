/** Renders a reward for display with at most three decimal places, for example `1.0` or `0.25`; `none` for null. */
export function renderReward(reward: number | null): string {
  if (reward === null) return 'none';
  const text = String(Math.round(reward * 1000) / 1000);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
