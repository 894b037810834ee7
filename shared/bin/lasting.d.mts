export const LASTING: { flags: readonly string[]; settings: Readonly<Record<string, string>> };
export const COMPILED: string;
