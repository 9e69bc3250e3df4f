import type { RouteObject } from "react-router";
import { RouteError } from "./pages/RouteError";
import { Shell } from "./shell/Shell";

/** The whole address space on one screen. Pages load when they are first opened. */
export const routes: RouteObject[] = [
  { path: "/login", hydrateFallbackElement: <></>, errorElement: <RouteError />, lazy: async () => ({ Component: (await import("./pages/LoginPage")).LoginPage }) },
  {
    path: "/",
    element: <Shell />,
    errorElement: <RouteError />,
    // Nothing is shown for the moment that the first page's code takes.
    hydrateFallbackElement: <></>,
    children: [
      {
        errorElement: <RouteError />,
        children: [
          { index: true, lazy: async () => ({ Component: (await import("./pages/HomePage")).HomePage }) },
          { path: "applications", lazy: async () => ({ Component: (await import("./pages/ApplicationsPage")).ApplicationsPage }) },
          { path: "applications/:id", lazy: async () => ({ Component: (await import("./pages/ApplicationPage")).ApplicationPage }) },
          { path: "resources", lazy: async () => ({ Component: (await import("./pages/ResourcesPage")).ResourcesPage }) },
          { path: "resources/:id", lazy: async () => ({ Component: (await import("./pages/ResourcePage")).ResourcePage }) },
          { path: "requests", lazy: async () => ({ Component: (await import("./pages/RequestsPage")).RequestsPage }) },
          { path: "requests/new", lazy: async () => ({ Component: (await import("./pages/NewRequestPage")).NewRequestPage }) },
          { path: "tickets/:id", lazy: async () => ({ Component: (await import("./pages/TicketPage")).TicketPage }) },
          { path: "approvals", lazy: async () => ({ Component: (await import("./pages/ApprovalsPage")).ApprovalsPage }) },
          { path: "*", lazy: async () => ({ Component: (await import("./pages/NotFoundPage")).NotFoundPage }) },
        ],
      },
    ],
  },
];
