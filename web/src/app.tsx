import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { createBrowserRouter, RouterProvider } from "react-router";
import { newCache } from "./api/cache";
import { onSignedOut } from "./api/client";
import { ToastProvider } from "./components/Toast";
import { isEmbedded } from "./lib/embed";
import { toLogin } from "./lib/session-end";
import { embedRoutes, routes } from "./routes";
import { cssVariables, theme } from "./theme";

const schemeManager = localStorageColorSchemeManager({ key: "acp-color-scheme" });

const cache = newCache();

const router = createBrowserRouter(isEmbedded() ? embedRoutes : routes);

/**
 * styleNonce returns the nonce that the server put into the page for this response; Mantine's style elements carry it. It is undefined in a page without
 * one.
 */
export function styleNonce(): string | undefined {
  const content = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content;
  return content && !content.startsWith("__") ? content : undefined;
}

function useLoginWhenSignedOut() {
  // The login is never shown in a frame; see EmbedShell.
  useEffect(() => (isEmbedded() ? undefined : onSignedOut(() => toLogin(router, cache))), []);
}

/** App is the root component: theme, cache, messages and routes. */
export function App() {
  useLoginWhenSignedOut();
  return (
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto" colorSchemeManager={schemeManager} getStyleNonce={() => styleNonce() ?? ""}>
      <QueryClientProvider client={cache}>
        <ToastProvider>
          <RouterProvider router={router} />
        </ToastProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
}
