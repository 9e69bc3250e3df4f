import type { RouteObject } from "react-router";
import { lazyPage } from "./lib/page-load";
import { RouteError } from "./pages/RouteError";
import { EmbedShell, OutsideEmbed } from "./shell/EmbedShell";
import { Shell } from "./shell/Shell";

const application: RouteObject = { path: "applications/:id", lazy: lazyPage(async () => (await import("./pages/ApplicationPage")).ApplicationPage) };
const resource: RouteObject = { path: "resources/:id", lazy: lazyPage(async () => (await import("./pages/ResourcePage")).ResourcePage) };

/** embedRoutes contains the routes of a document that other sites may show in a frame. No other page can be reached in it. */
export const embedRoutes: RouteObject[] = [
  {
    path: "/",
    element: <EmbedShell />,
    errorElement: <RouteError />,
    hydrateFallbackElement: <></>,
    children: [{ errorElement: <RouteError />, children: [application, resource, { path: "*", element: <OutsideEmbed /> }] }],
  },
];

/** routes contains all routes. The code of a page is loaded when it is first opened. */
export const routes: RouteObject[] = [
  { path: "/login", hydrateFallbackElement: <></>, errorElement: <RouteError />, lazy: lazyPage(async () => (await import("./pages/LoginPage")).LoginPage) },
  {
    path: "/",
    element: <Shell />,
    errorElement: <RouteError />,
    // Nothing is shown while the code of the first page loads.
    hydrateFallbackElement: <></>,
    children: [
      {
        errorElement: <RouteError />,
        children: [
          { index: true, lazy: lazyPage(async () => (await import("./pages/HomePage")).HomePage) },
          { path: "applications", lazy: lazyPage(async () => (await import("./pages/ApplicationsPage")).ApplicationsPage) },
          application,
          { path: "resources", lazy: lazyPage(async () => (await import("./pages/ResourcesPage")).ResourcesPage) },
          resource,
          { path: "packages", lazy: lazyPage(async () => (await import("./pages/PackagesPage")).PackagesPage) },
          { path: "packages/:name", lazy: lazyPage(async () => (await import("./pages/PackagePage")).PackagePage) },
          { path: "requests", lazy: lazyPage(async () => (await import("./pages/RequestsPage")).RequestsPage) },
          { path: "requests/new", lazy: lazyPage(async () => (await import("./pages/NewRequestPage")).NewRequestPage) },
          { path: "tickets/:id", lazy: lazyPage(async () => (await import("./pages/TicketPage")).TicketPage) },
          { path: "approvals", lazy: lazyPage(async () => (await import("./pages/ApprovalsPage")).ApprovalsPage) },
          { path: "inbox", lazy: lazyPage(async () => (await import("./pages/InboxPage")).InboxPage) },
          { path: "inbox/undelivered", lazy: lazyPage(async () => (await import("./pages/UndeliveredPage")).UndeliveredPage) },
          { path: "delegations", lazy: lazyPage(async () => (await import("./pages/DelegationsPage")).DelegationsPage) },
          { path: "views/:link", lazy: lazyPage(async () => (await import("./pages/SharedViewPage")).SharedViewPage) },
          { path: "profile", lazy: lazyPage(async () => (await import("./pages/ProfilePage")).ProfilePage) },
          { path: "device", lazy: lazyPage(async () => (await import("./pages/DevicePage")).DevicePage) },
          { path: "terms", lazy: lazyPage(async () => (await import("./pages/TermsPage")).TermsPage) },
          { path: "flows", lazy: lazyPage(async () => (await import("./pages/FlowsPage")).FlowsPage) },
          { path: "rollout", lazy: lazyPage(async () => (await import("./pages/RolloutPage")).RolloutPage) },
          { path: "unused", lazy: lazyPage(async () => (await import("./pages/UnusedPage")).UnusedPage) },
          { path: "policies", lazy: lazyPage(async () => (await import("./pages/PoliciesPage")).PoliciesPage) },
          { path: "policies/what-if", lazy: lazyPage(async () => (await import("./pages/WhatIfPage")).WhatIfPage) },
          { path: "organizations", lazy: lazyPage(async () => (await import("./pages/OrganizationsPage")).OrganizationsPage) },
          { path: "organizations/:id", lazy: lazyPage(async () => (await import("./pages/OrganizationPage")).OrganizationPage) },
          { path: "classes", lazy: lazyPage(async () => (await import("./pages/ClassesPage")).ClassesPage) },
          { path: "catalog", lazy: lazyPage(async () => (await import("./pages/CatalogPage")).CatalogPage) },
          { path: "catalog/entities", lazy: lazyPage(async () => (await import("./pages/EntitiesPage")).EntitiesPage) },
          { path: "workloads", lazy: lazyPage(async () => (await import("./pages/WorkloadsPage")).WorkloadsPage) },
          { path: "fleet", lazy: lazyPage(async () => (await import("./pages/FleetPage")).FleetPage) },
          { path: "fleet/:member", lazy: lazyPage(async () => (await import("./pages/MemberPage")).MemberPage) },
          { path: "traffic", lazy: lazyPage(async () => (await import("./pages/TrafficMapPage")).TrafficMapPage) },
          { path: "access", lazy: lazyPage(async () => (await import("./pages/AccessMapPage")).AccessMapPage) },
          { path: "access-policies", lazy: lazyPage(async () => (await import("./pages/AccessPoliciesPage")).AccessPoliciesPage) },
          { path: "access-policies/:name", lazy: lazyPage(async () => (await import("./pages/AccessPolicyPage")).AccessPolicyPage) },
          { path: "findings", lazy: lazyPage(async () => (await import("./pages/FindingsPage")).FindingsPage) },
          { path: "downgrade", lazy: lazyPage(async () => (await import("./pages/DowngradePage")).DowngradePage) },
          { path: "reviews", lazy: lazyPage(async () => (await import("./pages/ReviewsPage")).ReviewsPage) },
          { path: "reviews/new", lazy: lazyPage(async () => (await import("./pages/NewReviewPage")).NewReviewPage) },
          { path: "reviews/:id", lazy: lazyPage(async () => (await import("./pages/ReviewPage")).ReviewPage) },
          { path: "reviews/:id/report", lazy: lazyPage(async () => (await import("./pages/ReviewReportPage")).ReviewReportPage) },
          { path: "ledger", lazy: lazyPage(async () => (await import("./pages/LedgerPage")).LedgerPage) },
          { path: "*", lazy: lazyPage(async () => (await import("./pages/NotFoundPage")).NotFoundPage) },
        ],
      },
    ],
  },
];
