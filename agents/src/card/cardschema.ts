/** The JSON Schema of a card, with which editors complete and check it: npm run docs:card. */
import { AgentCard } from '@swefarm/shared';
import { z } from 'zod';

export const cardSchema = (): string =>
  `${JSON.stringify(z.toJSONSchema(AgentCard, { io: 'input' }), null, 2)}\n`;

if (import.meta.main) process.stdout.write(cardSchema());
