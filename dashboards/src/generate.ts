/** `npm run dashboards`: writes rules, alerts, their proofs and the dashboards from the definitions. */
import { writeFileSync } from 'node:fs';
import { generatedFiles } from './files.ts';

for (const [path, text] of generatedFiles()) writeFileSync(new URL(`../${path}`, import.meta.url), text);
