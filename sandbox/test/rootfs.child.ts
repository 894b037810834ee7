/** A process with the rootfs runtime; see child.ts. Arguments: folder, image, action, seconds. */
import { join } from 'node:path';
import { rootfsRuntime } from '../src/rootfs/runtime.ts';
import { child } from './child.ts';

const [folder = '', image = '', task, seconds] = process.argv.slice(2);
const folders = { imagesDir: join(folder, 'images'), scratchDir: join(folder, 'scratch') };
await child(await rootfsRuntime(folders), image, task, seconds);
