import tseslint from "typescript-eslint";
import jsxA11y from "eslint-plugin-jsx-a11y";
import reactHooks from "eslint-plugin-react-hooks";

export default tseslint.config(
  { ignores: ["dist", "node_modules", "src/api/schema.gen.ts", "public", "*.config.js"] },
  ...tseslint.configs.strict,
  jsxA11y.flatConfigs.recommended,
  reactHooks.configs.flat.recommended,
  {
    files: ["**/*.{ts,tsx}"],
    rules: {
      "no-console": "error",
      "@typescript-eslint/consistent-type-imports": "error",
      "react-hooks/exhaustive-deps": "error",
      "no-restricted-imports": [
        "error",
        {
          paths: [
            {
              name: "@mantine/core",
              importNames: ["Modal", "ModalBase", "ModalRoot", "ModalStack"],
              message: "Use FormDialog for a dialog that sends something, and InfoDialog for one that only shows something.",
            },
          ],
        },
      ],
      "no-restricted-syntax": [
        "error",
        { selector: "Property[key.name='queryKey'] > ArrayExpression, Property[key.name='queryKey'] > ConditionalExpression > ArrayExpression", message: "Take the key from api/keys.ts." },
        { selector: "CallExpression[callee.property.name=/^(get|set)QueryData$/] > ArrayExpression:first-child", message: "Take the key from api/keys.ts." },
      ],
    },
  },
  { files: ["src/components/FormDialog.tsx", "src/components/InfoDialog.tsx"], rules: { "no-restricted-imports": "off" } },
);
