"""`backup schedule`: a CronJob that backs a hosted cluster up."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

COMMAND = Command(
    "backup schedule",
    "Back up a hosted cluster again and again",
    long="Makes a CronJob in the operator's namespace that runs backup create, as an account that may read what a "
    "backup of this cluster needs and nothing else. Passphrase and credentials come from a Secret there: keys "
    "`passphrase` or `key`, and for an object store AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. The schedule ends "
    "with its cluster; backups stay. Run it again to change it, and when the cluster names other Secrets than before.",
    examples=(
        (
            "Every night, seven are kept",
            "{prog} backup schedule demo --cron '0 2 * * *' --store s3://backups/hcp "
            "--s3-endpoint https://s3.example.com --secret backup --keep 7",
        ),
        (
            "Into a claim of the operator's namespace",
            "{prog} backup schedule demo --cron '30 */6 * * *' --store claim:backups --secret backup",
        ),
        ("No longer", "{prog} backup schedule demo --remove"),
    ),
    args=(Arg("NAME", "hosted cluster"),),
    flags=(
        Flag("cron", "string", "0 2 * * *", "when, as five fields of cron, UTC", metavar="when"),
        Flag("store", "string", "", "s3://BUCKET/PREFIX, or claim:NAME", metavar="place", group="Store"),
        Flag("s3-endpoint", "string", "", "address of the object store (default: AWS)", metavar="url", group="Store"),
        Flag("s3-region", "string", "us-east-1", "its region", metavar="region", group="Store"),
        Flag("secret", "string", "", "Secret in the operator's namespace", metavar="name", group="Store"),
        Flag("keep", "int", 7, "how many are kept; 0 keeps all", metavar="N"),
        Flag("image", "string", "", "image of hcp (default: the operator's)", metavar="image"),
        Flag("operator-namespace", "string", "hypershift", "namespace of the operator", metavar="namespace"),
        Flag("remove", "bool", False, "end the schedule; backups stay"),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(("remove", "cron"), ("remove", "store")),
    handler="hcp.cli.backup.schedule_run:run",
)
