//! Status of ResourceClaim and DeviceTaintRule.

use super::{Condition, NodeSelector, Opaque, Toleration, view};

view! {
    /// ResourceClaimStatus.
    ClaimStatus {
        /// `allocation`
        allocation: opt<Allocation> = "allocation",
        /// `reservedFor`
        reserved_for: list<Consumer> = "reservedFor",
        /// `devices`
        devices: list<DeviceStatus> = "devices",
    }
}

view! {
    /// AllocationResult.
    Allocation {
        /// `devices`
        devices: one<AllocationDevices> = "devices",
        /// `nodeSelector`
        node_selector: opt<NodeSelector> = "nodeSelector",
    }
}

view! {
    /// DeviceAllocationResult.
    AllocationDevices {
        /// `results`
        results: list<AllocationResult> = "results",
        /// `config`
        config: list<AllocationConfig> = "config",
    }
}

view! {
    /// DeviceRequestAllocationResult.
    AllocationResult {
        /// `request`
        request: str = "request",
        /// `driver`
        driver: str = "driver",
        /// `pool`
        pool: str = "pool",
        /// `device`
        device: str = "device",
        /// `adminAccess`
        admin_access: opt_bool = "adminAccess",
        /// `tolerations`
        tolerations: list<Toleration> = "tolerations",
        /// `bindingConditions`
        binding_conditions: strings = "bindingConditions",
        /// `bindingFailureConditions`
        binding_failure_conditions: strings = "bindingFailureConditions",
        /// `shareID`
        share_id: opt_str = "shareID",
        /// `skipNodeOperations`
        skip_node_operations: strings = "skipNodeOperations",
    }
}

view! {
    /// DeviceAllocationConfiguration.
    AllocationConfig {
        /// `source`
        source: str = "source",
        /// `requests`
        requests: strings = "requests",
        /// `opaque`
        opaque: opt<Opaque> = "opaque",
    }
}

view! {
    /// ResourceClaimConsumerReference.
    Consumer {
        /// `resource`
        resource: str = "resource",
        /// `name`
        name: str = "name",
        /// `uid`
        uid: str = "uid",
    }
}

view! {
    /// AllocatedDeviceStatus.
    DeviceStatus {
        /// `driver`
        driver: str = "driver",
        /// `pool`
        pool: str = "pool",
        /// `device`
        device: str = "device",
        /// `shareID`
        share_id: opt_str = "shareID",
        /// `conditions`
        conditions: list<Condition> = "conditions",
        /// `data`
        data: raw = "data",
        /// `networkData`
        network_data: opt<NetworkData> = "networkData",
    }
}

view! {
    /// NetworkDeviceData.
    NetworkData {
        /// `interfaceName`
        interface_name: str = "interfaceName",
        /// `ips`
        ips: strings = "ips",
        /// `hardwareAddress`
        hardware_address: str = "hardwareAddress",
    }
}

view! {
    /// DeviceTaintRuleStatus.
    RuleStatus {
        /// `conditions`
        conditions: list<Condition> = "conditions",
    }
}
