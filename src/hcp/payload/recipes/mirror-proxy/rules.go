package main

import "strings"

// rule says where images below a source are looked for first.
type rule struct {
	Source  string   `json:"source"`
	Mirrors []string `json:"mirrors"`
}

// place is a repository in a registry.
type place struct {
	registry, repository string
}

// places are the mirrors of a repository, in the order to ask: those of the longest source that it is below.
func places(rules []rule, name string) []place {
	longest := -1
	for _, one := range rules {
		if _, ok := below(one.Source, name); ok {
			longest = max(longest, len(one.Source))
		}
	}
	var found []place
	seen := map[place]bool{}
	for _, one := range rules {
		rest, ok := below(one.Source, name)
		if !ok || len(one.Source) != longest {
			continue
		}
		for _, mirror := range one.Mirrors {
			registry, repository, _ := strings.Cut(strings.Trim(mirror, "/")+rest, "/")
			next := place{registry, repository}
			if repository != "" && !seen[next] {
				seen[next] = true
				found = append(found, next)
			}
		}
	}
	return found
}

// below tells whether a repository is at a source or below it, and what follows the source in its name.
func below(source, name string) (string, bool) {
	if domain, ok := strings.CutPrefix(source, "*"); ok {
		host, path, slash := strings.Cut(name, "/")
		bare := host
		if colon := strings.LastIndex(host, ":"); colon > 0 {
			bare = host[:colon]
		}
		fits := strings.HasPrefix(domain, ".") && (strings.HasSuffix(bare, domain) || strings.HasSuffix(host, domain))
		return "/" + path, slash && fits
	}
	rest, ok := strings.CutPrefix(name, source)
	return rest, ok && source != "" && (rest == "" || rest[0] == '/')
}
