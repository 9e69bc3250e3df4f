package oidc

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"net/http"

	"github.com/acp-io/acp/playground/internal/demo"
)

const requestParam = "request"

var (
	//go:embed login.html
	loginHTML string
	//go:embed login.css
	loginCSS []byte

	loginTemplate = template.Must(template.New("login").Parse(loginHTML))
)

type loginPage struct {
	storage  *storage
	people   []demo.Person
	others   int // number of users who can log in and are not listed
	callback func(context.Context, string) string
}

type loginView struct {
	Request, Username, Error string
	Expired                  bool
	Password, PortalURL      string
	People                   []demo.Person
	Others                   int
}

func (p *loginPage) show(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get(requestParam)
	if _, err := p.storage.AuthRequestByID(r.Context(), id); err != nil {
		p.render(w, http.StatusBadRequest, loginView{Expired: true})
		return
	}
	p.render(w, http.StatusOK, loginView{Request: id})
}

func (p *loginPage) submit(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.render(w, http.StatusBadRequest, loginView{Expired: true})
		return
	}
	id, username := r.PostForm.Get(requestParam), r.PostForm.Get("username")
	ok, err := p.storage.login(id, username, r.PostForm.Get("password"))
	switch {
	case err != nil:
		p.render(w, http.StatusBadRequest, loginView{Expired: true})
	case !ok:
		p.render(w, http.StatusUnauthorized, loginView{Request: id, Username: username, Error: "This username and password do not belong together. Try again."})
	default:
		http.Redirect(w, r, p.callback(r.Context(), id), http.StatusSeeOther)
	}
}

func (p *loginPage) render(w http.ResponseWriter, code int, v loginView) {
	v.People, v.Others, v.Password, v.PortalURL = p.people, p.others, demo.Password, p.storage.client.portalURL
	var out bytes.Buffer
	if err := loginTemplate.Execute(&out, v); err != nil {
		http.Error(w, "the login page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = out.WriteTo(w) // the browser has disconnected
}

func serveCSS(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(loginCSS) // the browser has disconnected
}
