// Package core is the HTTP core of the portal: it checks each request against the route table, identifies the caller by a session or a
// token, limits rates and bodies, decodes, writes errors as problems, and serves event streams and the web application. It depends on no
// feature: the operations of the API are registered with it. It must not import other packages of the portal except openapi.
package core
