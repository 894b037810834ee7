/** `swefarm schema`: prints the JSON Schema of a file that users write. */
import { cardSchema } from '@swefarm/agents';
import { runSchema } from '@swefarm/runs';
import { configSchema } from '@swefarm/shared';
import { priceSchema } from '@swefarm/trajectories';
import { choice, command, required } from './declare.ts';
import { print } from './terminal.ts';

const SCHEMAS = { config: configSchema, run: runSchema, card: cardSchema, prices: priceSchema };
type Name = keyof typeof SCHEMAS;

export const schema = command({
  arguments: {
    '<name>': required(
      choice(
        'config: --config; run: --run-config; card: --agent-card; prices: --prices',
        Object.keys(SCHEMAS) as Name[],
      ),
    ),
  },
  options: {},
  example: 'swefarm schema run > run.schema.json',
  notes: `
An editor with a YAML language server reads the schema that the first line of a file names:
  # yaml-language-server: $schema=run.schema.json
`,
  async run(_, { name }) {
    const made = SCHEMAS[name]();
    await print(typeof made === 'string' ? made.trimEnd() : JSON.stringify(made, null, 2));
  },
});
