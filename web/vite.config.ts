import { defineConfig } from "vitest/config";
import react from "@vitejs/plugin-react";
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

const backend = process.env.ACP_PORTAL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react(), keepMarker],
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
    setupFiles: ["src/testing/setup.ts"],
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    testTimeout: 60_000,
  },
});
