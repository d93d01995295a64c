"""What the VM JSON patch may change, field by field; docs/node-pools.md says the same to users.

A patch is written by somebody who may make hosted clusters and nothing else. With a VM's whole specification in hand
that person could mount Secrets and service account tokens of the hosted namespace, disks and files of the node, run
programs beside the machine, leave its network policy or take the address of a control plane. So this is a list of
what is allowed, not of what is forbidden: how a machine is built and where it is scheduled.
"""

from __future__ import annotations

from hcp.nodepool.patch_types import INT32, Rule, amount, amounts, fields, flag, items, number, one_of, text, texts

NAME = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_WORD = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"
_KEY = r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_VALUE = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
# Keys of a person's own: with a prefix, which is none of those that parts of a cluster go by.
_FOREIGN = (
    r"(?!([a-z0-9.-]*\.)?"
    r"(kubernetes\.io|k8s\.io|x-k8s\.io|openshift\.io|kubevirt\.io|cncf\.io|istio\.io|cilium\.io|crio\.io|ovn\.org"
    r"|projectcalico\.org|antrea\.io|harvesterhci\.io|linkerd\.io)/)[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
LABEL_KEY = rf"vm\.kubevirt\.io/{_WORD}|{_FOREIGN}"
ANNOTATION_KEY = (
    rf"vm\.kubevirt\.io/{_WORD}|kubevirt\.io/allow-pod-bridge-network-live-migration"
    rf"|cluster-autoscaler\.kubernetes\.io/{_WORD}|descheduler\.alpha\.kubernetes\.io/{_WORD}"
)
# A toleration without a key, or of a key that protects control planes and sick nodes, is not for tenants.
_TOLERATED = (
    r"(?!(node-role\.kubernetes\.io|node\.kubernetes\.io|node\.cloudprovider\.kubernetes\.io|node\.cluster\.x-k8s\.io)/)"
    + _KEY
)
_enabled = fields(enabled=flag)
_word = text(_WORD, 100)
_selector = fields(
    matchLabels=texts(_KEY, _VALUE),
    matchExpressions=items(
        fields(
            key=text(_KEY, 317), operator=one_of("In", "NotIn", "Exists", "DoesNotExist"), values=items(text(_VALUE))
        )
    ),
)
_node_term = fields(
    matchExpressions=items(
        fields(
            key=text(_KEY, 317),
            operator=one_of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
            values=items(text(_VALUE)),
        )
    ),
    matchFields=items(
        fields(key=one_of("metadata.name"), operator=one_of("In", "NotIn"), values=items(text(r"[a-z0-9.-]{1,253}")))
    ),
)
_pod_term = fields(labelSelector=_selector, topologyKey=text(_KEY, 317))
_pod_affinity = fields(
    requiredDuringSchedulingIgnoredDuringExecution=items(_pod_term),
    preferredDuringSchedulingIgnoredDuringExecution=items(fields(weight=number(1, 100), podAffinityTerm=_pod_term)),
)
_affinity = fields(
    nodeAffinity=fields(
        requiredDuringSchedulingIgnoredDuringExecution=fields(nodeSelectorTerms=items(_node_term)),
        preferredDuringSchedulingIgnoredDuringExecution=items(fields(weight=number(1, 100), preference=_node_term)),
    ),
    podAffinity=_pod_affinity,
    podAntiAffinity=_pod_affinity,
)
_timer = fields(present=flag, tickPolicy=_word, track=_word)
_bus = one_of("virtio", "scsi", "sata", "usb")
_disk = fields(
    name=text(NAME, 63),
    disk=fields(bus=_bus, readonly=flag, pciAddress=text(r"[0-9a-fA-F:.]{1,16}")),
    cdrom=fields(bus=_bus, readonly=flag, tray=one_of("open", "closed")),
    lun=fields(bus=_bus, readonly=flag),
    blockSize=fields(
        custom=fields(logical=number(512, 2**21), physical=number(512, 2**21)), matchVolume=fields(enabled=flag)
    ),
    bootOrder=number(1, 100),
    cache=one_of("none", "writethrough", "writeback"),
    io=one_of("native", "default", "threads"),
    errorPolicy=one_of("stop", "ignore", "report", "enospace"),
    dedicatedIOThread=flag,
    serial=text(r"[A-Za-z0-9_.+-]{0,64}"),
    tag=_word,
)
_interface = fields(
    bridge=fields(),
    masquerade=fields(),
    sriov=fields(),
    model=one_of("virtio", "e1000", "e1000e", "ne2k_pci", "pcnet", "rtl8139", "igb"),
    ports=items(fields(name=text(NAME, 63), port=number(1, 65535), protocol=one_of("TCP", "UDP", "SCTP"))),
    bootOrder=number(1, 100),
    pciAddress=text(r"[0-9a-fA-F:.]{1,16}"),
    acpiIndex=number(0, 16383),
    tag=_word,
    dhcpOptions=fields(bootFileName=text(), tftpServerName=text(), ntpServers=items(text(r"[0-9.]{7,15}"), 8)),
)
_devices = fields(
    disks=items(_disk, 32),
    interfaces=items(_interface, 32),
    networkInterfaceMultiqueue=flag,
    blockMultiQueue=flag,
    autoattachGraphicsDevice=flag,
    autoattachInputDevice=flag,
    autoattachMemBalloon=flag,
    autoattachSerialConsole=flag,
    logSerialConsole=flag,
    disableHotplug=flag,
    useVirtioTransitional=flag,
    rng=fields(),
    tpm=fields(persistent=flag),
    watchdog=fields(name=text(NAME, 63), i6300esb=fields(action=one_of("poweroff", "reset", "shutdown"))),
    inputs=items(fields(name=text(NAME, 63), type=one_of("tablet"), bus=one_of("virtio", "usb")), 4),
)
_hyperv = dict.fromkeys(
    (
        *("evmcs", "frequencies", "ipi", "reenlightenment", "relaxed", "reset"),
        *("runtime", "synic", "tlbflush", "vapic", "vpindex"),
    ),
    _enabled,
)
_domain = fields(
    cpu=fields(
        cores=number(1, 512),
        sockets=number(1, 512),
        threads=number(1, 16),
        maxSockets=number(1, 512),
        model=_word,
        features=items(fields(name=_word, policy=one_of("force", "require", "optional", "disable", "forbid"))),
        dedicatedCpuPlacement=flag,
        isolateEmulatorThread=flag,
        numa=fields(guestMappingPassthrough=fields()),
        realtime=fields(mask=text(r"[0-9,^-]{0,100}")),
    ),
    memory=fields(guest=amount, maxGuest=amount, hugepages=fields(pageSize=text(r"[0-9]{1,6}[KMG]i"))),
    resources=fields(
        requests=amounts(r"cpu|memory|hugepages-[0-9]{1,6}[KMG]i|ephemeral-storage"),
        limits=amounts(r"cpu|memory|hugepages-[0-9]{1,6}[KMG]i|ephemeral-storage"),
        overcommitGuestOverhead=flag,
    ),
    devices=_devices,
    machine=fields(type=_word),
    firmware=fields(
        uuid=text(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
        serial=text(r"[A-Za-z0-9_.+-]{0,256}"),
        bootloader=fields(bios=fields(useSerial=flag), efi=fields(secureBoot=flag, persistent=flag)),
    ),
    features=fields(
        acpi=_enabled,
        apic=fields(enabled=flag, endOfInterrupt=flag),
        hyperv=fields(
            **_hyperv,
            spinlocks=fields(enabled=flag, spinlocks=number(4096, INT32)),
            synictimer=fields(enabled=flag, direct=_enabled),
            vendorid=fields(enabled=flag, vendorid=text(r"[ -~]{0,12}")),
        ),
        hypervPassthrough=_enabled,
        kvm=fields(hidden=flag),
        pvspinlock=_enabled,
        smm=_enabled,
    ),
    clock=fields(
        timezone=text(r"[A-Za-z0-9_+/-]{1,64}"),
        utc=fields(offsetSeconds=number(-86400, 86400)),
        timer=fields(hpet=_timer, hyperv=_timer, kvm=_timer, pit=_timer, rtc=_timer),
    ),
    chassis=fields(
        **{key: text(r"[A-Za-z0-9 _.+-]{0,128}") for key in ("asset", "manufacturer", "serial", "sku", "version")}
    ),
    ioThreadsPolicy=one_of("shared", "auto", "supplementalPool"),
    ioThreads=fields(supplementalPoolThreadCount=number(1, 64)),
    launchSecurity=fields(sev=fields(policy=fields(encryptedState=flag))),
)
_instance = fields(
    domain=_domain,
    volumes=items(fields(name=text(NAME, 63), dataVolume=fields(name=text(NAME, 63))), 32),
    evictionStrategy=one_of("None", "LiveMigrate", "LiveMigrateIfPossible", "External"),
    terminationGracePeriodSeconds=number(0, 86400),
    nodeSelector=texts(_KEY, _VALUE),
    affinity=_affinity,
    tolerations=items(
        fields(
            key=text(_TOLERATED, 317),
            operator=one_of("Exists", "Equal"),
            value=text(_VALUE),
            effect=one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
            tolerationSeconds=number(0, 86400),
        )
    ),
    topologySpreadConstraints=items(
        fields(
            maxSkew=number(1, 1000),
            minDomains=number(1, 1000),
            topologyKey=text(_KEY, 317),
            whenUnsatisfiable=one_of("DoNotSchedule", "ScheduleAnyway"),
            labelSelector=_selector,
            matchLabelKeys=items(text(_KEY, 317)),
            nodeAffinityPolicy=one_of("Honor", "Ignore"),
            nodeTaintsPolicy=one_of("Honor", "Ignore"),
        )
    ),
    schedulerName=text(NAME, 63),
    dnsPolicy=one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    dnsConfig=fields(
        nameservers=items(text(r"[0-9a-fA-F:.]{2,45}"), 3),
        searches=items(text(r"[A-Za-z0-9.-]{1,253}"), 32),
        options=items(fields(name=_word, value=text(_VALUE)), 16),
    ),
)
_data_volume = fields(
    metadata=fields(
        name=text(NAME, 40), annotations=texts(r"cdi\.kubevirt\.io/storage\.bind\.immediate\.requested", "true|false|")
    ),
    spec=fields(
        source=fields(blank=fields()),
        preallocation=flag,
        storage=fields(
            resources=fields(requests=amounts("storage")),
            storageClassName=text(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"),
            accessModes=items(one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"), 4),
            volumeMode=one_of("Filesystem", "Block"),
        ),
    ),
)
_metadata = fields(labels=texts(LABEL_KEY, _VALUE), annotations=texts(ANNOTATION_KEY))
MACHINE: Rule = fields(
    metadata=_metadata,
    spec=fields(
        dataVolumeTemplates=items(_data_volume, 16),
        template=fields(metadata=_metadata, spec=_instance),
    ),
)
