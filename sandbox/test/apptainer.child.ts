/** A process with the Apptainer runtime; see child.ts. Arguments: folder, image, action, seconds. */
import { join } from 'node:path';
import { apptainerRuntime } from '../src/apptainer/runtime.ts';
import { child } from './child.ts';

const [folder = '', image = '', task, seconds] = process.argv.slice(2);
const folders = { imagesDir: join(folder, 'images'), scratchDir: join(folder, 'scratch') };
await child(await apptainerRuntime({ ...folders, templates: [] }), image, task, seconds);
