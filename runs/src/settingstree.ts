/** Settings as they are parsed, before the schema of the run record checks them. */

/** Mapping parsed from YAML. */
export type SettingsTree = { [key: string]: unknown };

export const asTree = (value: unknown): SettingsTree =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as SettingsTree) : {};
