// Package deskclient is the HTTP client of the desk: posting, listing, viewing,
// following and withdrawing cases and adding messages to them at the gateway,
// and reading actions and handing in signed decisions at the console.
//
// A call is one request; nothing is retried here except a follow that broke,
// which resumes where it was. Whatever is sent may be sent again safely: the
// same key, or the same signature, is the same message. What the desk refuses
// comes back as a *deskapi.Problem. Answers are bounded in size.
package deskclient
