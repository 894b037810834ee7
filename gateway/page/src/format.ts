export const integer = (value: number): string => value.toLocaleString('en-US');

export const percent = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${((100 * part) / whole).toFixed(part === 0 || part === whole ? 0 : 1)} %`;

export const decimal = (value: number | null, digits = 1): string =>
  value === null ? '–' : value.toFixed(digits);

/** Renders a duration, for example as `0.2 s`, `48 s`, `12 min` or `3 h 05 min`. */
export function duration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** Renders 1,234 as `1.2k` and 12,345 as `12k`. */
export function short(value: number): string {
  if (value < 1_000) return String(value);
  if (value < 1_000_000) return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

export const bytes = (value: number): string =>
  value < 1024
    ? `${value} B`
    : value < 1024 ** 2
      ? `${(value / 1024).toFixed(1)} KiB`
      : `${(value / 1024 ** 2).toFixed(1)} MiB`;

export const moment = (at: number | string): string => {
  const date = new Date(at);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
};

export const words = (name: string): string => name.replaceAll('_', ' ');

/** Returns `django/django` for `django__django-123`, as SWE-bench names instances. */
export function repoOf(instanceId: string): string {
  const stem = instanceId.replace(/[-.][^-.]*$/, '');
  return stem.replace('__', '/');
}
