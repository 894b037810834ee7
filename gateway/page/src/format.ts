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

/** Renders 1,234 as `1.23K` and 12,345 as `12.3K`. */
export const short = (value: number): string =>
  value.toLocaleString('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

export const bytes = (value: number): string => {
  const power = value < 1024 ? 0 : value < 1024 ** 2 ? 1 : 2;
  return `${decimal(value / 1024 ** power, Math.min(power, 1))} ${['B', 'KiB', 'MiB'][power]}`;
};

/** Renders a local time as `01-31 23:59`. */
export const moment = (at: number | string): string => new Date(at).toLocaleString('sv').slice(5, 16);

export const words = (name: string): string => name.replaceAll('_', ' ');

/** Returns `django/django` for `django__django-123`, as SWE-bench names instances. */
export const repoOf = (instanceId: string): string =>
  instanceId.replace(/[-.][^-.]*$/, '').replace('__', '/');
