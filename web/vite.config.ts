import { defineConfig } from "vitest/config";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// The marker file is committed so that the Go package embeds an existing
// folder; a build empties the folder, so it is put back afterwards.
const keepMarker = {
  name: "keep-dist-marker",
  closeBundle() {
    writeFileSync(fileURLToPath(new URL("./dist/.gitkeep", import.meta.url)), "");
  },
};

// Writes which npm packages a build put into dist/, by their keys in the lock file, for the bill of
// materials of the portal's image. The list is kept outside of dist/, which the portal serves.
const listBundledPackages: Plugin = {
  name: "list-bundled-packages",
  apply: "build",
  generateBundle(_options, bundle) {
    const files = [...this.getModuleIds()];
    for (const output of Object.values(bundle)) {
      if (output.type === "asset") files.push(...output.originalFileNames); // fonts that styles refer to
    }
    const packages = new Set<string>();
    for (const file of files) {
      // A package below another's node_modules has the whole path from the first one as its key.
      const key = /(?<=^|\/)node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(file);
      if (key !== null) packages.add(key[0]);
    }
    const list = { node: process.version, packages: [...packages].sort() };
    writeFileSync(
      fileURLToPath(new URL("./bundled-packages.json", import.meta.url)),
      `${JSON.stringify(list, null, 2)}\n`,
    );
  },
};

const backend = process.env.ACP_PORTAL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react(), keepMarker, listBundledPackages],
  build: {
    target: "es2023",
    // A data: URL of a script, style or font would be refused by the CSP.
    assetsInlineLimit: 0,
    sourcemap: false,
  },
  server: {
    host: "127.0.0.1",
    proxy: { "/api": backend, "/auth": backend },
  },
  test: {
    environment: "jsdom",
    // Without it, each file would load the components and jsdom again, which took more than half of the time. The setup resets what files share.
    isolate: false,
    setupFiles: ["src/testing/setup.ts"],
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    testTimeout: 60_000,
  },
});
