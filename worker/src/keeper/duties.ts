/** All duties of the keeper. A new one is a file beside this one, an import and a line here. */
import type { Duty } from './keeper.ts';
import { sessionLeases } from './sessions.ts';

export const DUTIES: readonly Duty[] = [sessionLeases];
