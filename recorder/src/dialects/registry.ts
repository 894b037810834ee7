/** All dialects. */
import type { Dialect } from '@swefarm/shared';
import { CHAT } from './chat.ts';
import type { DialectForm } from './dialect.ts';
import { MESSAGES } from './messages.ts';
import { RESPONSES } from './responses.ts';

export const DIALECTS: Readonly<Record<Dialect, DialectForm>> = {
  chat: CHAT,
  responses: RESPONSES,
  messages: MESSAGES,
};
