/** Tests builds of images on a real engine. No registry provides these images. */
import { join } from 'node:path';
import { BUILT_IMAGES, newId } from '@swefarm/shared';
import { ensureDocker } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBuild } from '../../src/engine/build.ts';
import { createEnsureImage, findImage } from '../../src/engine/images.ts';
import { openPulledImages, type PulledImages } from '../../src/images/pulledimages.ts';
import { errorOf, importImage } from '../subject.ts';

const socketPath = '/var/run/docker.sock';
const docker = new Docker({ socketPath });
const open = new AbortController().signal;

test('the image of a task is never requested from a registry', async () => {
  const asked: string[] = [];
  const fetch = async (image: string): Promise<never> => {
    asked.push(image);
    throw new Error('asked');
  };
  const ensure = createEnsureImage({ docker, fetch, pulled: null });
  await expect(ensure(`${BUILT_IMAGES}${newId()}`, open)).rejects.toMatchObject({
    failureClass: 'image_not_found',
  });
  expect(asked).toEqual([]);
});

const fileOf = (text: string) => ({ content: Buffer.from(text), executable: false });
const buildOf = (name: string, text: string, timeoutMs = 60_000) => ({
  ...{ name, timeoutMs, limits: { cpus: 0.5, memoryBytes: 256 * 1024 ** 2 } },
  files: new Map([['Dockerfile', fileOf(text)]]),
});
/** Returns the ids of the images with a label that have neither a name nor children. */
async function leftOf(label: string): Promise<string[]> {
  const all = await docker.listImages({ all: true, filters: { label: [label] } });
  const parents = new Set(all.map(({ ParentId }) => ParentId));
  const isNamed = (tags: string[] | undefined) => tags?.some((tag) => !tag.startsWith('<none>')) === true;
  return all.filter(({ Id, RepoTags }) => !parents.has(Id) && !isNamed(RepoTags)).map(({ Id }) => Id);
}

describe('a build', () => {
  let engine: AsyncDisposable;
  let base: string;
  const made: string[] = [];
  beforeAll(async () => {
    engine = await ensureDocker({ socketPath });
    base = await importImage(socketPath);
  });
  afterAll(async () => {
    await Promise.all(made.map((name) => errorOf(docker.getImage(name).remove({ force: true }))));
    await engine[Symbol.asyncDispose]();
  });
  const aName = (): string => {
    made.push(`${BUILT_IMAGES}${newId().toLowerCase()}`);
    return made.at(-1) ?? '';
  };
  const builder = (pulled: PulledImages | null = null) => createBuild(() => ({ docker, pulled }));

  test('that fails leaves no image and is not repeated', async () => {
    const label = `own.${newId()}`;
    const text = `FROM ${base}\nLABEL ${label}=1\nRUN echo ${label} >/x\nRUN exit 3\n`;
    const build = builder();
    const wanted = buildOf(aName(), text);
    await expect(build(wanted, open)).rejects.toMatchObject({ failureClass: 'image_build' });
    expect(await leftOf(label)).toEqual([]);
    const began = performance.now();
    await expect(build(wanted, open)).rejects.toThrow(/returned a non-zero code: 3/);
    expect(performance.now() - began).toBeLessThan(100);
  });

  test('that times out leaves no image and may succeed on another node', async () => {
    const label = `own.${newId()}`;
    const text = `FROM ${base}\nLABEL ${label}=1\nRUN echo ${label}; sleep 60\n`;
    const failure = { failureClass: 'image_not_built' };
    await expect(builder()(buildOf(aName(), text, 3_000), open)).rejects.toMatchObject(failure);
    expect(await leftOf(label)).toEqual([]);
  });

  test('of several stages leaves only its result', async () => {
    const label = `own.${newId()}`;
    const name = aName();
    const first = `FROM ${base} AS first\nLABEL ${label}=1\nRUN echo ${label} >/x\n`;
    await builder()(buildOf(name, `${first}FROM ${base}\nCOPY --from=first /x /x\n`), open);
    expect(await findImage(docker, name)).not.toBeNull();
    expect(await leftOf(label)).toEqual([]);
  });

  test('that two workers of one node request runs once', async () => {
    const label = `own.${newId()}`;
    const file = join(temporaryFolder('builds'), 'images.json');
    const wanted = buildOf(aName(), `FROM ${base}\nLABEL ${label}=1\nRUN sleep 1; echo ${label} >/x\n`);
    const workers = [1, 2].map(() => builder(openPulledImages(file)));
    await Promise.all(workers.map((build) => build(wanted, open)));
    expect(await leftOf(label)).toEqual([]);
    expect([...(await openPulledImages(file).list()).keys()]).toEqual([wanted.name]);
  });

  test('with an ENTRYPOINT makes an image with this entrypoint', async () => {
    const name = aName();
    await builder()(buildOf(name, 'FROM scratch\nENTRYPOINT ["/serve", "now"]\n'), open);
    expect(await findImage(docker, name)).toMatchObject({ entrypoint: ['/serve', 'now'] });
  });

  test('limits the memory and the CPUs of its steps', async () => {
    const files = ['memory.max memory/memory.limit_in_bytes', 'cpu.max cpu/cpu.cfs_quota_us'];
    const read = files.map(
      (names) => `cat $(cd /sys/fs/cgroup; ls -d $PWD/{${names.replace(' ', ',')}} 2>/dev/null)`,
    );
    const text = `FROM ${base}\nRUN ["/bin/bash", "-c", "echo LIMITS $(${read[0]}) $(${read[1]}); exit 9"]\n`;
    await expect(builder()(buildOf(aName(), text), open)).rejects.toThrow(/LIMITS 268435456 50000/);
  });

  test('fails temporarily if the registry of the base image is unreachable', async () => {
    const wanted = buildOf(aName(), 'FROM localhost:1/own/base:1\n');
    await expect(builder()(wanted, open)).rejects.toMatchObject({ failureClass: 'image_pull' });
  });
});
