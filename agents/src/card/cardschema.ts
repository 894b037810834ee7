/** The JSON Schema of a card, with which editors complete and check it: npm run docs:card. */
import { AgentCard, fileSchema } from '@swefarm/shared';

export const cardSchema = (): string =>
  `${JSON.stringify(fileSchema('Card of an agent', AgentCard), null, 2)}\n`;

if (import.meta.main) process.stdout.write(cardSchema());
