/** Makes images of an example with another repository in place of its /testbed. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BuiltExamples } from '../examples/build.ts';

/** A built example: its unpacked tree, and its image in the engine. */
type Base = Pick<BuiltExamples['examples'][number], 'tree'> & { image: string };

type Made = {
  runtime: 'docker' | 'rootfs';
  name: string;
  /** Name of the repository's folder in `folder` and at the root of the image; default: `testbed`. */
  inside?: string;
  /** A folder in `folder` that becomes `/tools`. */
  tools?: string;
  /** The image's PATH; default: the example's. */
  path?: string;
};

/** Makes an image of the example with `folder`'s repository in place of /testbed, and returns its name. */
export function exampleImage(base: Base, folder: string, made: Made): string {
  const { runtime, name, inside = 'testbed', tools, path } = made;
  if (runtime === 'docker') {
    const dockerfile = [
      `FROM ${base.image}`,
      'RUN rm -rf /testbed',
      // The tools are the first layer, because several images share them.
      ...(tools === undefined ? [] : [`COPY ${tools} /tools`]),
      `COPY ${inside} /${inside}`,
      ...(path === undefined ? [] : [`ENV PATH=${path}`]),
      'LABEL swefarm.test=example',
      `WORKDIR /${inside}`,
    ];
    execFileSync('docker', ['build', '-q', '--network', 'none', '-t', name, '-f', '-', folder], {
      input: `${dockerfile.join('\n')}\n`,
    });
    return name;
  }
  const tree = join(folder, 'tree');
  // Files of the base are hard links, because no process writes to them.
  execFileSync('bash', [
    '-c',
    'mkdir "$2"; find "$1" -mindepth 1 -maxdepth 1 ! -name testbed -exec cp -al -t "$2" {} +; mv "$3" "$2/"',
    ...['tree', base.tree.path, tree, join(folder, inside)],
  ]);
  if (tools !== undefined) execFileSync('mv', [join(folder, tools), join(tree, 'tools')]);
  if (path !== undefined)
    writeFileSync(`${tree}.json`, JSON.stringify({ Env: [`PATH=${path}`, 'HOME=/root'] }));
  return `${base.tree.kind}:${tree}`;
}
