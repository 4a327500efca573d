package world

import "fmt"

const deploymentStatuses = "running degraded draining paused retired"

var deploymentNames = fieldNames{
	tier: "class", city: "zone", key: "port", sponsor: "depends_on", item: "component", site: "ring", status: "state", place: "host",
	total: "load", follows: "succeeds", size: "channel", cost: "cost", capacity: "headroom", lead: "warmup", area: "zone",
}

// ops is an operations desk with services, deployments, packages and pools (D3). Its changes need a permit.
var ops = Domain{
	Name:  "ops",
	names: deploymentNames,
	First: []string{"atlas", "borea", "comet", "delphi", "ember", "falcon", "gaia", "helix", "indus", "juno", "kepler", "lyra", "mango", "nova",
		"orbit", "pulsar", "quark", "raven", "sirius", "tango", "umbra", "vega", "willow", "xenon", "yonder", "zephyr", "argon", "basil",
		"cobalt", "drift", "echo", "flint"},
	Last: []string{"api", "auth", "batch", "billing", "cache", "cart", "chat", "cron", "dns", "feed", "gate", "graph", "hook", "index", "jobs",
		"ledger", "lock", "mail", "media", "meter", "proxy", "queue", "quota", "relay", "route", "search", "shard", "store", "stream",
		"sync", "token", "vault"},
	Join:  "-",
	Mails: []string{"core.example", "edge.example", "data.example", "infra.example"},
	Streets: []string{"alder", "beech", "cedar-a", "cypress", "elm", "fir", "hemlock", "juniper", "larch", "maple", "oak", "pine", "poplar", "spruce",
		"willow-b", "yew"},
	Place: func(n int, name string) string { return fmt.Sprintf("%s-%03d", name, n) },
	Ops: [NumOps]Op{
		FindHolder:   {"find_service", "Find services by mail of the owner, by pager, or by name with port."},
		GetHolder:    {"get_service", "Show a service with its hosts and the service that it depends on."},
		ListSubjects: {"list_deployments", "List a service's deployments."},
		GetSubject:   {"get_deployment", "Show a deployment with its units, messages about it, and its rev."},
		FindGood:     {"find_package", "Find packages by component."},
		GetGood:      {"get_package", "Show a package with its builds and its rev."},
		GetPolicy:    {"get_runbook", "Show the runbook on a topic: for each state of the deployment the remedy, and the code to close with."},
		ListOptions:  {"list_pools", "List the pools of a zone."},
		GetOption:    {"get_pool", "Show a pool's cost, headroom and warm-up."},
		Allow:        {"open_change", "Open a change on a service. Changes of its deployments are made under it."},
		Drop:         {"retire_deployment", "Retire a deployment."},
		Move:         {"move_deployment", "Move a deployment to another host of its service."},
		Swap:         {"rebuild_unit", "Rebuild a unit of a deployment from a build of the same package."},
		Reserve:      {"claim_capacity", "Claim capacity of a pool."},
		Release:      {"return_capacity", "Give a claim back."},
		HandOver:     {"page_on_call", "Page a team about a deployment or a service."},
	},
	Kinds: [NumRoles]Kind{
		Holder: {Name: "service", Plural: "services"}, Place: {Name: "machine", Plural: "machines"},
		Subject: {Name: "deployment", Plural: "deployments"}, Part: {Name: "unit", Plural: "units"},
		Good: {Name: "package", Plural: "packages"}, Version: {Name: "build", Plural: "builds"}, Policy: {Name: "runbook"},
		Option: {Name: "pool", Plural: "pools"}, Permit: {Name: "change"},
	},
	Types: own([8]string{"service", "machine", "deployment", "unit", "package", "build", "runbook", "pool"}, "S-M-D-U-P-B-R-L-",
		attributes(deploymentNames, deploymentStatuses), map[int]string{
			TTier: "critical standard internal trial", TCity: "Boreal Coastal Desert Estuary Fjord Glacier Heath Island",
			TItem: "frontend backend scheduler broker indexer resolver balancer exporter notifier importer renderer archiver sampler crawler tracer limiter",
			TSite: "blue green amberish grey", TStatus: deploymentStatuses, TSize: "stable canary",
			TTopic: "latency errors disk intrusion", TRemedy: "retire rebuild escalate refuse",
			TReason: "obsolete faulty costly merged", TQueue: "platform database network response",
		}),
	Says: Phrases{
		Subject: "deployment", Subjects: "deployments", Holder: "service", About: "of the component", Lies: "in the % ring",
		Placed: "made on the UTC day of", Key: "port", Tier: "a service of class % in", Sponsor: "the service that is depended on by",
		Follows: "the deployment that it succeeds", Drop: "retire with reason", Move: "move to the host",
		Swap: "rebuild the % unit", SwapSame: "from the same build", SwapTo: "from the % build of that package",
		Escalate: "escalate (page the % team with the runbook's code)", Trouble: "an alert about",
		Option: "pool", Options: "pools", Limits: [3]string{"headroom for at least the deployment's load", "a warm-up of at most % ticks", "in"},
		Permit: "open a change on the service",
	},
	NeedsPermit: true,
	Change:      "change",
}
