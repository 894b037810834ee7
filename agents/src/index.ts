export { type Bundle, BundleManifest, mountPath } from './bundle.ts';
