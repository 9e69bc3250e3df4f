import { describe, expect, it } from "vitest";
import { keys } from "./keys";

interface Named {
  path: string;
  key: readonly unknown[];
  parameters: string[];
}

/** Every key of the factory; functions are called with parameters that occur nowhere else. */
function all(of: object, path = "keys"): Named[] {
  return Object.entries(of).flatMap(([name, value]: [string, unknown]): Named[] => {
    const at = `${path}.${name}`;
    if (Array.isArray(value)) return [{ path: at, key: value, parameters: [] }];
    if (typeof value === "function") {
      const parameters = Array.from({ length: value.length }, (_, i) => `${at} ${i}`);
      return [{ path: at, key: value(...parameters), parameters }];
    }
    return all(value as object, at);
  });
}

const begins = (key: readonly unknown[], prefix: readonly unknown[]) => prefix.every((part, i) => key[i] === part);

describe("query keys", () => {
  const named = all(keys);

  it("are different for different reads", () => {
    const written = named.map(({ key }) => JSON.stringify(key));
    expect(written.filter((key, i) => written.indexOf(key) !== i)).toEqual([]);
  });

  it("contain every parameter, so that no answer is shown for another question", () => {
    expect(named.some(({ parameters }) => parameters.length > 0)).toBe(true);
    for (const { path, key, parameters } of named) expect(key, path).toEqual(expect.arrayContaining(parameters));
  });

  it("of one kind begin with that kind's `all`, which invalidates them", () => {
    for (const { path, key } of named.filter(({ path }) => path.endsWith(".all"))) {
      const kind = path.slice(0, -".all".length);
      for (const other of named.filter(({ path }) => path.startsWith(`${kind}.`))) expect(begins(other.key, key), other.path).toBe(true);
    }
  });
});
