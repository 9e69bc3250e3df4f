import { catalog } from "./catalog";
import { common } from "./common";
import { tickets } from "./tickets";

export const zh = { ...common, ...catalog, ...tickets };
