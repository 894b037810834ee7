/** Builds the test commands of wp-calypso for each file of the test patch, by package and version. */
import type { Instance } from '@swefarm/shared';
import { pathOf, readDiff } from '../text/diff.ts';

const SNAPSHOT = /__snapshots__\/[^\n]*.js.snap$/;
const JS_CONFIG = ['10.10.0', '10.12.0', '10.13.0', '10.14.0', '10.15.2', '10.16.3'];
const JSON_CONFIG = [
  '6.11.5',
  '8.9.1',
  '8.9.3',
  '8.9.4',
  '8.11.0',
  '8.11.2',
  '10.4.1',
  '10.5.0',
  '10.6.0',
  '10.9.0',
];

export function wpCalypsoCommands(instance: Pick<Instance, 'test_patch' | 'version'>): string[] {
  return readDiff(instance.test_patch).flatMap((file) => commandsFor(pathOf(file), instance.version));
}

function commandsFor(changed: string, version: string): string[] {
  // For a snapshot, the command runs the folder that contains the folder `__snapshots__`.
  const path = SNAPSHOT.test(changed) ? changed.split('/').slice(0, -2).join('/') : changed;
  if (path.startsWith('client') || path.startsWith('packages')) {
    const part = path.split('/', 1)[0] ?? '';
    const config = JS_CONFIG.includes(version) ? 'js' : JSON_CONFIG.includes(version) ? 'json' : null;
    return config === null
      ? [`npm run test-${part} --verbose '${path}'`]
      : [`./node_modules/.bin/jest --verbose -c=test/${part}/jest.config.${config} '${path}'`];
  }
  if (path.startsWith('test/e2e')) {
    return ['cd test/e2e', `NODE_CONFIG_ENV=test npm run test ${path}`, 'cd ../..'];
  }
  return [];
}
