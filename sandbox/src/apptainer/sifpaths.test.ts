import { expect, it } from 'vitest';
import { candidatePaths, instanceOfImage } from './sifpaths.ts';

it.each([
  ['swebench/sweb.eval.x86_64.django_1776_django-11099:latest', 'django__django-11099'],
  ['xingyaoww/sweb.eval.x86_64.django_s_django-11099', 'django__django-11099'],
  ['sweb.eval.arm64.psf__requests-1142:v1', 'psf__requests-1142'],
  ['python:3.12', null],
])('the instance of %s is %s', (image, id) => {
  expect(instanceOfImage(image)).toBe(id);
});

it('lists every spelling of the id, then the name of the image, as .sif and as folder', () => {
  const paths = candidatePaths(['/s/{instance_id}.sif'], 'ghcr.io/a/b.img:v2', 'Py__Me-1');
  const stems = [
    'Py__Me-1',
    'py__me-1',
    'Py_s_Me-1',
    'Py_1776_Me-1',
    'py_s_me-1',
    'py_1776_me-1',
    'b.img_v2',
    'b.img',
    'ghcr.io_a_b.img',
  ];
  expect(paths).toEqual([...stems.map((stem) => `/s/${stem}.sif`), ...stems.map((stem) => `/s/${stem}`)]);
});

it('takes the id from the name of the image when the caller has none', () => {
  const image = 'swebench/sweb.eval.x86_64.django_1776_django-11099:latest';
  expect(candidatePaths(['/a/{instance_id}', '/b/{image}'], image, undefined)).toEqual(
    expect.arrayContaining([
      '/a/django__django-11099',
      '/a/django_s_django-11099',
      '/a/sweb.eval.x86_64.django_1776_django-11099',
      '/b/sweb.eval.x86_64.django_1776_django-11099',
    ]),
  );
});

it.each(['/x/y.sif', 'sif:/x/y.sif', 'dir:/x/y.sif'])('%s is an explicit path', (image) => {
  expect(candidatePaths(['/s/{instance_id}.sif'], image, 'a__b-1')).toEqual(['/x/y.sif']);
});

it.each(['reg:5000/a/b:v1', 'reg:5000/a/b@sha256:0', 'reg:5000/a/b:v1@sha256:0', 'reg:5000/a/b'])(
  'the port of the registry is part of the name: %s',
  (image) => {
    expect(candidatePaths(['/s/{image}.sif'], image, undefined)).toContain('/s/reg:5000_a_b.sif');
  },
);
