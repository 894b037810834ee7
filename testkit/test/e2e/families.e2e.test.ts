/** Instances of several dataset families in one file on rootfs; the other runtime is in families.full.test.ts. */
import { familySuite } from './familysuite.ts';

familySuite('rootfs');
